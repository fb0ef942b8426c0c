/* The second private copy, see static_a.c. */
#define NPU_IR_STATIC
#define NPU_IR_IMPLEMENTATION
#include "use.h"

int other_copy(void);
int other_copy(void)
{
    return use_declarations();
}
