"""Whether a peer's program is installed."""

import shutil

from ..server import Missing


def there(program):
    if not shutil.which(program):
        raise Missing(f"{program} is not installed: tests/install.sh bench")
