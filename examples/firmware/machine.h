/* What run.c asks of a machine: see machine.c. */
#ifndef MACHINE_H
#define MACHINE_H
#include <stdint.h>
void machine_print(const char *what, uint32_t number); /* "what number" and a new line, to the host by semihosting */
uint32_t machine_count(void);                          /* instructions since it was called before */
#endif
