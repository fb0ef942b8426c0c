/* What comes before main on a Cortex-M4 without an operating system: vectors, data, the floating-point unit. Output and the
   exit status go to the host by semihosting. What main took of the stack, or all that followed firmware_look_again, is
   printed at the end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNTOUCHED = 0x5a5a5a5a };

extern uint32_t firmware_stack_low[], firmware_stack[], firmware_data_from[], firmware_data[], firmware_data_end[],
    firmware_bss[], firmware_bss_end[];
extern void initialise_monitor_handles(void);
extern int main(void);
void firmware_reset(void);
void firmware_look_again(void);
void firmware_fault(void);
void _init(void);
void _fini(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    firmware_stack, (const void *)firmware_reset, (const void *)firmware_fault, (const void *)firmware_fault,
    (const void *)firmware_fault, (const void *)firmware_fault, (const void *)firmware_fault,
};

static uint32_t *top;

__attribute__((noinline)) void firmware_look_again(void)
{
    uint32_t *here = (uint32_t *)__builtin_frame_address(0) - 64; /* below are no words of this function */
    top = (uint32_t *)__builtin_frame_address(0);
    for (volatile uint32_t *word = firmware_stack_low; word < here; word++) {
        *word = UNTOUCHED;
    }
}

void firmware_reset(void)
{
    volatile uint32_t *access = (volatile uint32_t *)0xe000ed88u; /* CPACR */
    uint32_t *from = firmware_data_from, *stack = firmware_stack_low;
    int status;
    *access |= 0xfu << 20;
    for (uint32_t *to = firmware_data; to < firmware_data_end;) {
        *to++ = *from++;
    }
    for (uint32_t *to = firmware_bss; to < firmware_bss_end;) {
        *to++ = 0;
    }
    firmware_look_again();
    top = firmware_stack;
    initialise_monitor_handles();
    status = main();
    while (*stack == UNTOUCHED) {
        stack++;
    }
    printf("stack %u bytes\n", (unsigned)((size_t)(top - stack) * sizeof *stack));
    exit(status);
}

void firmware_fault(void)
{
    _Exit(3);
}

void _init(void) { }
void _fini(void) { }
