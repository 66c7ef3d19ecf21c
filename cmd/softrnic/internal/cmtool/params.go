package cmtool

import (
	"strconv"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// PrivateData returns the private data of a client's requests.
func (o *Options) PrivateData(test string) []byte {
	if o.NoTerms {
		return nil
	}
	return rdmacm.EncodeParams(o.Terms(test))
}

// RejectMisfit rejects a request of a client with other parameters, see
// [rdmacm.RejectMismatch].
func (o *Options) RejectMisfit(r rdmacm.Request, test string) error {
	return rdmacm.RejectMismatch(r, func(oob.Params) oob.Params { return o.Terms(test) })
}

// Terms returns the parameters that both ends of a test must have alike.
func (o *Options) Terms(test string) oob.Params {
	var t oob.Params
	t.Add("test", test)
	t.Add("-c", strconv.Itoa(o.Connections))
	t.Add("-C", strconv.Itoa(o.Count))
	t.Add("-S", strconv.Itoa(o.Size))
	return t
}
