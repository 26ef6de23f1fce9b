#include "go_asm.h"
#include "textflag.h"

TEXT ·line(SB), NOSPLIT, $0-8
	MOVQ       p+0(FP), AX
	PREFETCHT0 (AX)
	RET

TEXT ·lines(SB), NOSPLIT, $0-8
	MOVQ       p+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET

// Of the runtime's g: the bounds of the stack and the saved registers, the status and the identity, what it is locked to, and
// the coroutine that it switches to. Of its stack: the frames of the switch and of who suspended, and what is below them,
// which is all of it if the task does little.
TEXT ·task(SB), NOSPLIT, $0-8
	MOVQ       t+0(FP), BX
	MOVQ       Task_g(BX), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 192(AX)
	PREFETCHT0 384(AX)
	MOVQ       Task_sp(BX), AX
	PREFETCHT0 -128(AX)
	PREFETCHT0 -64(AX)
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 192(AX)
	PREFETCHT0 256(AX)
	PREFETCHT0 320(AX)
	PREFETCHT0 384(AX)
	PREFETCHT0 448(AX)
	PREFETCHT0 512(AX)
	PREFETCHT0 576(AX)
	RET

TEXT ·self(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
