/* A microcontroller without an operating system, Arm or RISC-V, as qemu has them: vectors, what comes before main,
   text and the exit status for the host by semihosting, and a count of instructions. Under qemu's -icount the clock
   runs by instructions: the ticks of a loop whose instructions are known say how many a tick has. What main took of
   the stack is printed at the end. */
#include "machine.h"
#include <stddef.h>

enum { UNTOUCHED = 0x5a5a5a5a, WRITE0 = 0x04, EXIT_EXTENDED = 0x20, EXIT = 0x20026, TURNS = 200000 };

extern uint32_t machine_stack[], machine_data_from[], machine_data[], machine_data_end[], machine_bss[], machine_bss_end[];
extern int main(void);
void machine_reset(void);
void machine_main(void);
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);

static uint32_t ticks_before, ticks_of_loop;

#if defined(__riscv)
__attribute__((naked, section(".vectors"), used)) void machine_reset(void)
{
    __asm__ volatile("la gp, machine_data\n la sp, machine_stack\n j machine_main");
}

static void ask_host(uint32_t what, const void *about)
{
    register uint32_t a0 __asm__("a0") = what;
    register const void *a1 __asm__("a1") = about;
    __asm__ volatile(".option push\n .option norvc\n slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n .option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
}

static uint32_t ticks(void)
{
    uint32_t now;
    __asm__ volatile(".option push\n .option arch, +zicsr\n csrr %0, minstret\n .option pop" : "=r"(now));
    return now;
}

static void start_machine(void) { }

static void loop(uint32_t turns) { __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(turns)); }
#else
static void fault(void);
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    machine_stack, (const void *)machine_reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};

void machine_reset(void) { machine_main(); }

static void ask_host(uint32_t what, const void *about)
{
    register uint32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = about;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void fault(void)
{
    uint32_t words[2] = { EXIT, 3 };
    ask_host(EXIT_EXTENDED, words);
}

/* SysTick: 24 bits that count down. */
static uint32_t ticks(void) { return 0xffffffu - *(volatile uint32_t *)0xe000e018u; }

static void start_machine(void)
{
    volatile uint32_t *tick = (volatile uint32_t *)0xe000e010u;
#if defined(__ARM_FP)
    volatile uint32_t *access = (volatile uint32_t *)0xe000ed88u; /* CPACR */
    *access |= 0xfu << 20;
#endif
    tick[1] = 0xffffffu;
    tick[2] = 0;
    tick[0] = 5;
}

static void loop(uint32_t turns) { __asm__ volatile(".syntax unified\n 1: subs %0, #1\n bne 1b" : "+l"(turns) : : "cc"); }
#endif

/* What gcc calls by itself; volatile, or it calls them here, too. */
void *memcpy(void *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    }
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    volatile uint8_t *at = to, *end = at + size;
    while (at < end && ((uintptr_t)at & 3)) {
        *at++ = (uint8_t)byte;
    }
    for (; end - at >= 4; at += 4) {
        *(volatile uint32_t *)(volatile void *)at = (uint8_t)byte * 0x01010101u;
    }
    while (at < end) {
        *at++ = (uint8_t)byte;
    }
    return to;
}

void machine_print(const char *what, uint32_t number)
{
    char digits[12] = "", *at = digits + sizeof digits - 1;
    *--at = '\n';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    *--at = ' ';
    ask_host(WRITE0, what);
    ask_host(WRITE0, at);
}

uint32_t machine_count(void)
{
    uint32_t now = ticks(), passed = now - ticks_before;
    ticks_before = now;
#if defined(__riscv)
    return passed;
#else
    passed &= 0xffffffu;
    return (uint32_t)((uint64_t)passed * (2 * TURNS) / (ticks_of_loop ? ticks_of_loop : 1));
#endif
}

static void run_main(void)
{
    uint32_t *here = (uint32_t *)__builtin_frame_address(0) - 64; /* below are no words of this function */
    uint32_t words[2] = { EXIT, 0 }, *word = machine_bss_end;
    while (word < here) {
        *word++ = UNTOUCHED;
    }
    words[1] = (uint32_t)main();
    for (word = machine_bss_end; *word == UNTOUCHED;) {
        word++;
    }
    machine_print("stack", (uint32_t)((machine_stack - word) * (ptrdiff_t)sizeof *word));
    ask_host(EXIT_EXTENDED, words);
}

void machine_main(void)
{
    uint32_t *from = machine_data_from;
    start_machine();
    for (uint32_t *to = machine_data; to < machine_data_end;) {
        *to++ = *from++;
    }
    for (uint32_t *to = machine_bss; to < machine_bss_end;) {
        *to++ = 0;
    }
    ticks_before = ticks();
    loop(TURNS);
    ticks_of_loop = (ticks() - ticks_before) & 0xffffffu;
    run_main();
}
