"""The tests that run.py starts, by service. They run in the order of its list, in one lab, and each leaves it as it was."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
