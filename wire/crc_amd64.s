//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// crc_amd64.go explains the method. In fold512
//
//	SI, R8    what is left of the message, and how many bytes that is
//	DX        the constants
//	Z0 to Z3  the vectors that the message has been folded into, at first only Z0
//	Z4 to Z7  products of low halves
//	Z8 to Z11 constants
//
// The immediate of VPCLMULQDQ selects the halves to multiply: $0x00 both low,
// $0x11 both high.

// func fold512(reg uint32, p []byte, c *foldConstants) uint32
TEXT ·fold512(SB), NOSPLIT, $0-44
	MOVL reg+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), R8
	MOVQ c+32(FP), DX

	// The first words, CX of them, 1 to 16, and zeros; the mask keeps the load from
	// touching what is behind them. Add the register, and rotate the zeros from
	// the end to the front: VPERMD takes indexes modulo 16.
	LEAQ         -4(R8), CX
	ANDQ         $0x3C, CX
	SHRQ         $2, CX
	INCQ         CX
	VPBROADCASTD CX, Z5
	VMOVDQU32    foldConstants_indexes(DX), Z6
	VPCMPGTD     Z6, Z5, K1
	VMOVDQU32.Z  (SI), K1, Z0
	VMOVD        AX, X4
	VPXORD       Z4, Z0, Z0
	VPADDD       Z5, Z6, Z6
	VPERMD       Z0, Z6, Z0
	LEAQ         (SI)(CX*4), SI
	SHLQ         $2, CX
	SUBQ         CX, R8
	JZ           lastOne

	// One vector into the next until none is left, or with Z0 a multiple of four.
	VBROADCASTI32X4 foldConstants_by1(DX), Z8

single:
	MOVQ       R8, BX
	ANDQ       $0xC0, BX
	CMPQ       BX, $0xC0
	JEQ        four
	VPCLMULQDQ $0x00, Z8, Z0, Z4
	VPCLMULQDQ $0x11, Z8, Z0, Z0
	VPTERNLOGD $0x96, (SI), Z4, Z0 // Z0 ^= Z4 ^ (SI)
	ADDQ       $64, SI
	SUBQ       $64, R8
	JNZ        single

lastOne:
	// Z0 is the last vector.
	VMOVDQU32  (foldConstants_last+192)(DX), Z5
	VPCLMULQDQ $0x00, Z5, Z0, Z4
	VPCLMULQDQ $0x11, Z5, Z0, Z0
	JMP        add

four:
	VBROADCASTI32X4 foldConstants_by4(DX), Z8
	VMOVDQU32       (SI), Z1
	VMOVDQU32       64(SI), Z2
	VMOVDQU32       128(SI), Z3
	ADDQ            $192, SI
	SUBQ            $192, R8
	JZ              lastFour

loop:
	VPCLMULQDQ $0x00, Z8, Z0, Z4
	VPCLMULQDQ $0x11, Z8, Z0, Z0
	VPCLMULQDQ $0x00, Z8, Z1, Z5
	VPCLMULQDQ $0x11, Z8, Z1, Z1
	VPCLMULQDQ $0x00, Z8, Z2, Z6
	VPCLMULQDQ $0x11, Z8, Z2, Z2
	VPCLMULQDQ $0x00, Z8, Z3, Z7
	VPCLMULQDQ $0x11, Z8, Z3, Z3
	VPTERNLOGD $0x96, (SI), Z4, Z0
	VPTERNLOGD $0x96, 64(SI), Z5, Z1
	VPTERNLOGD $0x96, 128(SI), Z6, Z2
	VPTERNLOGD $0x96, 192(SI), Z7, Z3
	ADDQ       $256, SI
	SUBQ       $256, R8
	JNZ        loop

lastFour:
	// Z0 to Z3 are the last four vectors.
	VMOVDQU32  foldConstants_last(DX), Z8
	VMOVDQU32  (foldConstants_last+64)(DX), Z9
	VMOVDQU32  (foldConstants_last+128)(DX), Z10
	VMOVDQU32  (foldConstants_last+192)(DX), Z11
	VPCLMULQDQ $0x00, Z8, Z0, Z4
	VPCLMULQDQ $0x11, Z8, Z0, Z0
	VPCLMULQDQ $0x00, Z9, Z1, Z5
	VPCLMULQDQ $0x11, Z9, Z1, Z1
	VPCLMULQDQ $0x00, Z10, Z2, Z6
	VPCLMULQDQ $0x11, Z10, Z2, Z2
	VPCLMULQDQ $0x00, Z11, Z3, Z7
	VPCLMULQDQ $0x11, Z11, Z3, Z3
	VPTERNLOGD $0x96, Z1, Z5, Z0
	VPTERNLOGD $0x96, Z2, Z6, Z4
	VPTERNLOGD $0x96, Z3, Z7, Z0

add:
	// Add up the lanes.
	VPXORD        Z4, Z0, Z0
	VEXTRACTI64X4 $1, Z0, Y4
	VPXOR         Y4, Y0, Y0
	VEXTRACTI128  $1, Y0, X4
	VPXOR         X4, X0, X0

	// X0 is 96 bits, x^0 in bit 95. The upper 64 coefficients, which are the low
	// half, tell how often P is in it; what is left in bits 95..64 when it has been
	// subtracted so often is the register.
	VMOVDQU    foldConstants_divide(DX), X5
	VPCLMULQDQ $0x00, X5, X0, X4
	VPCLMULQDQ $0x10, X5, X4, X4
	VPXOR      X4, X0, X0
	VPEXTRD    $2, X0, AX
	MOVL       AX, ret+40(FP)
	VZEROUPPER
	RET

// func cpuid(leaf uint32) (eax, ebx, ecx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-20
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	RET

// func xgetbv() uint32
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET
