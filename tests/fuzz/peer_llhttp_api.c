/* llhttp: the functions around its state machine, which declares them otherwise than they are. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#include "api.c"

#include "http.c"
