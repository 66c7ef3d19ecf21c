package collective

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A callMismatch is a pair of calls of two ranks that do not match.
type callMismatch struct {
	Number                    uint32 // sequence number of the call
	Rank, Other               uint32 // ranks in the communicator
	Signature, OtherSignature callSignature
	// If the signatures match: the bytes that Rank sends to Other and that Other expects.
	// -1 means no message.
	Sends, Expects int64
}

// Error describes the mismatch.
func (d *callMismatch) Error() string {
	text := ""
	switch {
	case d.Signature == 0 && d.OtherSignature != 0:
		text = fmt.Sprintf("rank %d does not take part in %v of rank %d", d.Rank, d.OtherSignature, d.Other)
	case !d.Signature.sameCall(d.OtherSignature):
		text = describeMismatch(int(d.Rank), d.Signature, int(d.Other), d.OtherSignature)
	case d.Sends < 0:
		text = fmt.Sprintf("rank %d has completed %s and sent nothing to rank %d", d.Rank, d.Signature.Name(), d.Other)
	case d.Expects < 0:
		text = fmt.Sprintf("rank %d sends %d bytes in %s to rank %d, which expects none", d.Rank, d.Sends, d.Signature.Name(), d.Other)
	default:
		text = fmt.Sprintf("rank %d sends %d bytes in %s to rank %d, which expects %d", d.Rank, d.Sends, d.Signature.Name(), d.Other, d.Expects)
	}
	return fmt.Sprintf("%v: in call #%d %s", deadlock.ErrMismatch, d.Number, text)
}

// Unwrap returns ErrMismatch, and ErrTruncated if a block is too long.
func (d *callMismatch) Unwrap() []error {
	if d.Signature.sameCall(d.OtherSignature) && d.Expects >= 0 && d.Sends > d.Expects {
		return []error{deadlock.ErrMismatch, protocol.ErrTruncated}
	}
	return []error{deadlock.ErrMismatch}
}
