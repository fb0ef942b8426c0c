#!/bin/bash
# A program that includes the headers as a whole, for the Cortex-M4 of qemu's mps2-an386, with newlib-nano and semihosting.
# usage: build.sh "flags" source program      from the repository's root
arm-none-eabi-gcc -std=c99 -Os -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard $1 -Werror=frame-larger-than=16384 \
    -ffunction-sections -fdata-sections -Wl,--gc-sections -I. -Iexamples -nostartfiles --specs=nano.specs --specs=rdimon.specs \
    -u _printf_float -T tests/firmware/mps2_an386.ld "$2" tests/firmware/startup.c -lm -o "$3"
