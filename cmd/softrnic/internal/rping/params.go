package rping

import (
	"strconv"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// params returns the parameters of a client.
func (o *Options) params() oob.Params {
	var t oob.Params
	t.Add("test", "rping")
	t.Add("-S", strconv.Itoa(o.Size))
	if o.Count > 0 {
		t.Add("-C", strconv.Itoa(o.Count))
	}
	return t
}

// paramsFor returns the parameters that a server requires of a client with the parameters peer:
// the client's -S up to the server's, and the client's -C unless the server has one.
func (o *Options) paramsFor(peer oob.Params) oob.Params {
	want := *o
	want.Count = 0
	for _, term := range peer {
		n, _ := strconv.Atoi(term.Value)
		switch {
		case term.Option == "-S" && n <= o.Size:
			want.Size = n
		case term.Option == "-C":
			want.Count = n
		}
	}
	if o.Count > 0 {
		want.Count = o.Count
	}
	return want.params()
}
