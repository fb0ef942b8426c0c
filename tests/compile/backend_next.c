/* The same device, compiled with some later version: every struct has more members than the core knows. */
#define V02_MORE uint64_t more[3];
#define FROZEN_BACKEND next_backend
#include "backend_0_2.c"
