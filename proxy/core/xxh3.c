/* XXH3, which the cache, rules and logs of retort use, from its header alone: so only the part disk links libxxhash, for
 * the sums by the widest registers that the processor has. */
#define XXH_STATIC_LINKING_ONLY
#define XXH_IMPLEMENTATION
#include <xxhash.h>
