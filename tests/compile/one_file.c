/* Both implementations in one file, each asked for by its own macro. */
#include "../npu_impl.c"
#include "../npu_ref_impl.c"
