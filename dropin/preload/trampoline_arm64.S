/* Trampolines for arm64: a public name loads its slot and jumps there. An empty slot is filled first, with all registers
 * that may carry arguments saved: x0 to x8, of which x8 is the address of a returned structure, and q0 to q7. */
	.text

	.type	resolve_and_jump, %function
resolve_and_jump:
	.cfi_startproc
	stp	x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset x29, -224
	.cfi_offset x30, -216
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	str	x8, [sp, #80]
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	mov	w0, w17
	bl	softrnic_resolve
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x2, x3, [sp, #32]
	ldp	x4, x5, [sp, #48]
	ldp	x6, x7, [sp, #64]
	ldr	x8, [sp, #80]
	ldp	q0, q1, [sp, #96]
	ldp	q2, q3, [sp, #128]
	ldp	q4, q5, [sp, #160]
	ldp	q6, q7, [sp, #192]
	ldp	x29, x30, [sp], #224
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	br	x16
	.cfi_endproc
	.size	resolve_and_jump, . - resolve_and_jump

	.set	index, 0
	.macro	trampoline name
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	#34 /* bti c */
	adrp	x16, softrnic_slots + 8 * index
	add	x16, x16, #:lo12:softrnic_slots + 8 * index
	ldar	x16, [x16]
	cbz	x16, 1f
	br	x16
1:	mov	w17, #index
	b	resolve_and_jump
	.cfi_endproc
	.size	\name, . - \name
	.set	index, index + 1
	.endm

#define FUNCTION(name) trampoline name
#include "symbols.inc"

#if !STANDIN
	/* dlopen jumps to the function that softrnic_dlopen selects for the file. */
	.globl	dlopen
	.type	dlopen, %function
	.p2align 4
dlopen:
	.cfi_startproc
	hint	#34 /* bti c */
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	bl	softrnic_dlopen
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	br	x16
	.cfi_endproc
	.size	dlopen, . - dlopen
#endif

	.section .note.GNU-stack, "", %progbits
