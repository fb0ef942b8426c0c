/* A first private copy of the library; the second is in static_b.c. Their symbols must not meet. */
#define NPU_IR_STATIC
#define NPU_IR_IMPLEMENTATION
#include "use.h"

int other_copy(void);
int main(void)
{
    return use_declarations() || other_copy();
}
