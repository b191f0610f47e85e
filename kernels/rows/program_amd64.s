//go:build amd64 && !race && !purego

#include "textflag.h"

// The instructions of a Program, see program_amd64.go. Each processes eight vectors of rows, the accumulator, and jumps
// to the next instruction.
//
//	Y0-Y7   the accumulator
//	Y8-Y15  another operand, or intermediate values
//	SI, R9  the next instruction, the first
//	DI, R8  the addresses of the operands
//	BX      bytes of the rows that are done
//	CX, DX  beginning and end of the last eight vectors

#define NEXT MOVQ 16(SI), AX; ANDQ BX, AX; MOVQ 8(SI), DI; ADDQ AX, DI; MOVQ (SI), AX; ADDQ $40, SI; JMP AX
#define SECOND MOVQ -8(SI), R8; ANDQ BX, R8; ADDQ -16(SI), R8

// The operations on a vector A of the accumulator, a vector B of the other operand, and the operand at O(DI).
#define LOADED(A, B, O, P, Q, R) P O(DI), A
#define LOADED_B(A, B, O, P, Q, R) P O(DI), B
#define STORED(A, B, O, P, Q, R) P A, O(DI)
#define OPERATION(A, B, O, P, Q, R) P O(DI), A, A
#define REVERSED(A, B, O, P, Q, R) P O(DI), B; Q A, B, A
#define ADDED(A, B, O, P, Q, R) P O(DI), B, B; Q B, A, A
#define TAKEN(A, B, O, P, Q, R) P O(DI), B, B; Q A, B, A
#define EXTREME(A, B, O, P, Q, R) P O(DI), A, Y8; Q $3, A, A, Y9; R Y9, A, Y8, A
#define COMPARED(A, B, O, P, Q, R) P Q, O(DI), A, A; R Y8, A, A
#define CHOSEN(A, B, O, P, Q, R) P $2, A, A; Q A, O(DI), B, A
#define LOADED_FIRST(A, B, O, P, Q, R) P O(DI), A; Q O(R8), A, A
#define TWICE(A, B, O, P, Q, R) P O(DI), A, A; Q O(R8), A, A
#define OPERATION_STORED(A, B, O, P, Q, R) P O(DI), A, A; Q A, O(R8)
#define PRODUCT_ADDED(A, B, O, P, Q, R) P O(DI), B; Q O(R8), B, B; R B, A, A
#define WITH_NUMBER(A, B, O, P, Q, R) P Y8, A, A
#define WITH_NUMBER_ADDED(A, B, O, P, Q, R) P Y8, A, A; Q O(R8), A, A
#define PRODUCT_WITH_NUMBER(A, B, O, P, Q, R) P O(R8), Y8, Y9; Q Y9, A, A
#define FUNCTION(A, B, O, P, Q, R) P A, A
#define ROUNDED(A, B, O, P, Q, R) P Q, A, A
#define MASKED(A, B, O, P, Q, R) P Y8, A, A
#define INVERTED(A, B, O, P, Q, R) P A, Y8, A

#define EACH(I, P, Q, R) \
	I(Y0, Y8, 0, P, Q, R); I(Y1, Y9, 32, P, Q, R); I(Y2, Y10, 64, P, Q, R); I(Y3, Y11, 96, P, Q, R); \
	I(Y4, Y12, 128, P, Q, R); I(Y5, Y13, 160, P, Q, R); I(Y6, Y14, 192, P, Q, R); I(Y7, Y15, 224, P, Q, R)

// An instruction and its address in a table. A CONSTANT instruction has its number in all elements of Y8,
// a NUMBER instruction its first operand.
#define INSTRUCTION(TABLE, AT, NAME, I, P, Q, R) \
	TEXT NAME<>(SB), NOSPLIT, $0; EACH(I, P, Q, R); NEXT; DATA TABLE<>+AT(SB)/8, $NAME<>(SB)
#define PAIR(TABLE, AT, NAME, I, P, Q, R) \
	TEXT NAME<>(SB), NOSPLIT, $0; SECOND; EACH(I, P, Q, R); NEXT; DATA TABLE<>+AT(SB)/8, $NAME<>(SB)
#define NUMBER(TABLE, AT, NAME, SPREAD, I, P, Q, R) \
	TEXT NAME<>(SB), NOSPLIT, $0; SPREAD (DI), Y8; SECOND; EACH(I, P, Q, R); NEXT; DATA TABLE<>+AT(SB)/8, $NAME<>(SB)
#define CONSTANT(TABLE, AT, NAME, SPREAD, NUMBER, I, P, Q, R) \
	TEXT NAME<>(SB), NOSPLIT, $0; SPREAD NUMBER<>(SB), Y8; EACH(I, P, Q, R); NEXT; DATA TABLE<>+AT(SB)/8, $NAME<>(SB)

// func runProgram(code *micro, from, to int)
TEXT ·runProgram(SB), NOSPLIT, $0-24
	MOVQ code+0(FP), SI
	MOVQ from+8(FP), BX
	MOVQ to+16(FP), DX
	MOVQ SI, R9
	LEAQ -256(DX), CX
	NEXT

// end advances to the next eight vectors. The last ones end with the rows, so that some points are computed twice.
TEXT end<>(SB), NOSPLIT, $0
	ADDQ $256, BX
	CMPQ BX, CX
	JLE  again
	CMPQ BX, DX
	JGE  done
	MOVQ CX, BX

again:
	MOVQ R9, SI
	NEXT

done:
	VZEROUPPER
	RET

DATA one64<>(SB)/8, $0x3ff0000000000000; GLOBL one64<>(SB), RODATA, $8
DATA sign64<>(SB)/8, $0x8000000000000000; GLOBL sign64<>(SB), RODATA, $8
DATA rest64<>(SB)/8, $0x7fffffffffffffff; GLOBL rest64<>(SB), RODATA, $8

DATA table64<>(SB)/8, $end<>(SB)
INSTRUCTION(table64, 8, load64, LOADED, VMOVUPD, 0, 0)
INSTRUCTION(table64, 16, loadB64, LOADED_B, VMOVUPD, 0, 0)
INSTRUCTION(table64, 24, store64, STORED, VMOVUPD, 0, 0)
INSTRUCTION(table64, 32, add64, OPERATION, VADDPD, 0, 0)
INSTRUCTION(table64, 40, sub64, OPERATION, VSUBPD, 0, 0)
INSTRUCTION(table64, 48, subFrom64, REVERSED, VMOVUPD, VSUBPD, 0)
INSTRUCTION(table64, 56, mul64, OPERATION, VMULPD, 0, 0)
INSTRUCTION(table64, 64, div64, OPERATION, VDIVPD, 0, 0)
INSTRUCTION(table64, 72, divFrom64, REVERSED, VMOVUPD, VDIVPD, 0)
INSTRUCTION(table64, 80, addProduct64, ADDED, VMULPD, VADDPD, 0)
INSTRUCTION(table64, 88, subProduct64, ADDED, VMULPD, VSUBPD, 0)
INSTRUCTION(table64, 96, fromProduct64, TAKEN, VMULPD, VSUBPD, 0)
INSTRUCTION(table64, 104, min64, EXTREME, VMINPD, VCMPPD, VBLENDVPD)
INSTRUCTION(table64, 112, max64, EXTREME, VMAXPD, VCMPPD, VBLENDVPD)
CONSTANT(table64, 120, lt64, VBROADCASTSD, one64, COMPARED, VCMPPD, $17, VANDPD)
CONSTANT(table64, 128, le64, VBROADCASTSD, one64, COMPARED, VCMPPD, $18, VANDPD)
CONSTANT(table64, 136, gt64, VBROADCASTSD, one64, COMPARED, VCMPPD, $30, VANDPD)
CONSTANT(table64, 144, ge64, VBROADCASTSD, one64, COMPARED, VCMPPD, $29, VANDPD)
CONSTANT(table64, 152, eq64, VBROADCASTSD, one64, COMPARED, VCMPPD, $0, VANDPD)
CONSTANT(table64, 160, ne64, VBROADCASTSD, one64, COMPARED, VCMPPD, $4, VANDPD)
INSTRUCTION(table64, 168, choose64, CHOSEN, VPSLLQ, VBLENDVPD, 0)
INSTRUCTION(table64, 176, sqrt64, FUNCTION, VSQRTPD, 0, 0)
CONSTANT(table64, 184, neg64, VBROADCASTSD, sign64, MASKED, VXORPD, 0, 0)
CONSTANT(table64, 192, abs64, VBROADCASTSD, rest64, MASKED, VANDPD, 0, 0)
CONSTANT(table64, 200, not64, VBROADCASTSD, one64, INVERTED, VSUBPD, 0, 0)
INSTRUCTION(table64, 208, floor64, ROUNDED, VROUNDPD, $9, 0)
INSTRUCTION(table64, 216, ceil64, ROUNDED, VROUNDPD, $10, 0)
PAIR(table64, 224, loadAdd64, LOADED_FIRST, VMOVUPD, VADDPD, 0)
PAIR(table64, 232, addAdd64, TWICE, VADDPD, VADDPD, 0)
PAIR(table64, 240, mulAdd64, TWICE, VMULPD, VADDPD, 0)
PAIR(table64, 248, addStore64, OPERATION_STORED, VADDPD, VMOVUPD, 0)
PAIR(table64, 256, addLoadedProduct64, PRODUCT_ADDED, VMOVUPD, VMULPD, VADDPD)
NUMBER(table64, 264, mulNumber64, VBROADCASTSD, WITH_NUMBER, VMULPD, 0, 0)
NUMBER(table64, 272, addNumber64, VBROADCASTSD, WITH_NUMBER, VADDPD, 0, 0)
NUMBER(table64, 280, mulNumberAdd64, VBROADCASTSD, WITH_NUMBER_ADDED, VMULPD, VADDPD, 0)
NUMBER(table64, 288, addNumberProduct64, VBROADCASTSD, PRODUCT_WITH_NUMBER, VMULPD, VADDPD, 0)
GLOBL table64<>(SB), RODATA, $296

// func instructions64() *[37]uintptr
TEXT ·instructions64(SB), NOSPLIT, $0-8
	LEAQ table64<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

DATA one32<>(SB)/4, $0x3f800000; GLOBL one32<>(SB), RODATA, $4
DATA sign32<>(SB)/4, $0x80000000; GLOBL sign32<>(SB), RODATA, $4
DATA rest32<>(SB)/4, $0x7fffffff; GLOBL rest32<>(SB), RODATA, $4

DATA table32<>(SB)/8, $end<>(SB)
INSTRUCTION(table32, 8, load32, LOADED, VMOVUPS, 0, 0)
INSTRUCTION(table32, 16, loadB32, LOADED_B, VMOVUPS, 0, 0)
INSTRUCTION(table32, 24, store32, STORED, VMOVUPS, 0, 0)
INSTRUCTION(table32, 32, add32, OPERATION, VADDPS, 0, 0)
INSTRUCTION(table32, 40, sub32, OPERATION, VSUBPS, 0, 0)
INSTRUCTION(table32, 48, subFrom32, REVERSED, VMOVUPS, VSUBPS, 0)
INSTRUCTION(table32, 56, mul32, OPERATION, VMULPS, 0, 0)
INSTRUCTION(table32, 64, div32, OPERATION, VDIVPS, 0, 0)
INSTRUCTION(table32, 72, divFrom32, REVERSED, VMOVUPS, VDIVPS, 0)
INSTRUCTION(table32, 80, addProduct32, ADDED, VMULPS, VADDPS, 0)
INSTRUCTION(table32, 88, subProduct32, ADDED, VMULPS, VSUBPS, 0)
INSTRUCTION(table32, 96, fromProduct32, TAKEN, VMULPS, VSUBPS, 0)
INSTRUCTION(table32, 104, min32, EXTREME, VMINPS, VCMPPS, VBLENDVPS)
INSTRUCTION(table32, 112, max32, EXTREME, VMAXPS, VCMPPS, VBLENDVPS)
CONSTANT(table32, 120, lt32, VBROADCASTSS, one32, COMPARED, VCMPPS, $17, VANDPS)
CONSTANT(table32, 128, le32, VBROADCASTSS, one32, COMPARED, VCMPPS, $18, VANDPS)
CONSTANT(table32, 136, gt32, VBROADCASTSS, one32, COMPARED, VCMPPS, $30, VANDPS)
CONSTANT(table32, 144, ge32, VBROADCASTSS, one32, COMPARED, VCMPPS, $29, VANDPS)
CONSTANT(table32, 152, eq32, VBROADCASTSS, one32, COMPARED, VCMPPS, $0, VANDPS)
CONSTANT(table32, 160, ne32, VBROADCASTSS, one32, COMPARED, VCMPPS, $4, VANDPS)
INSTRUCTION(table32, 168, choose32, CHOSEN, VPSLLD, VBLENDVPS, 0)
INSTRUCTION(table32, 176, sqrt32, FUNCTION, VSQRTPS, 0, 0)
CONSTANT(table32, 184, neg32, VBROADCASTSS, sign32, MASKED, VXORPS, 0, 0)
CONSTANT(table32, 192, abs32, VBROADCASTSS, rest32, MASKED, VANDPS, 0, 0)
CONSTANT(table32, 200, not32, VBROADCASTSS, one32, INVERTED, VSUBPS, 0, 0)
INSTRUCTION(table32, 208, floor32, ROUNDED, VROUNDPS, $9, 0)
INSTRUCTION(table32, 216, ceil32, ROUNDED, VROUNDPS, $10, 0)
PAIR(table32, 224, loadAdd32, LOADED_FIRST, VMOVUPS, VADDPS, 0)
PAIR(table32, 232, addAdd32, TWICE, VADDPS, VADDPS, 0)
PAIR(table32, 240, mulAdd32, TWICE, VMULPS, VADDPS, 0)
PAIR(table32, 248, addStore32, OPERATION_STORED, VADDPS, VMOVUPS, 0)
PAIR(table32, 256, addLoadedProduct32, PRODUCT_ADDED, VMOVUPS, VMULPS, VADDPS)
NUMBER(table32, 264, mulNumber32, VBROADCASTSS, WITH_NUMBER, VMULPS, 0, 0)
NUMBER(table32, 272, addNumber32, VBROADCASTSS, WITH_NUMBER, VADDPS, 0, 0)
NUMBER(table32, 280, mulNumberAdd32, VBROADCASTSS, WITH_NUMBER_ADDED, VMULPS, VADDPS, 0)
NUMBER(table32, 288, addNumberProduct32, VBROADCASTSS, PRODUCT_WITH_NUMBER, VMULPS, VADDPS, 0)
GLOBL table32<>(SB), RODATA, $296

// func instructions32() *[37]uintptr
TEXT ·instructions32(SB), NOSPLIT, $0-8
	LEAQ table32<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
