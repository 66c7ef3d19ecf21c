package rdmacm

import (
	"bytes"
	"errors"
	"strings"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// ParamsLen is the maximum length of encoded parameters in bytes: the private data of a REQ after
// the header of RDMA-CM, the shortest of the messages that carry them.
const ParamsLen = 56

// paramsMagic begins encoded parameters. Its digit is the version of the format.
const paramsMagic = "softrnic 1 "

// EncodeParams returns parameters as private data: paramsMagic, the value of the first parameter,
// which is the test, and " option=value" for each of the others. The original programs send no
// private data and ignore the peer's (rdma-core, librdmacm/examples).
func EncodeParams(t oob.Params) []byte {
	text := paramsMagic + t[0].Value
	for _, term := range t[1:] {
		text += " " + term.Option + "=" + term.Value
	}
	return []byte(text)
}

// ParseParams decodes the result of EncodeParams. It reports false for other private data, that of
// a program without parameters.
func ParseParams(private []byte) (oob.Params, bool) {
	text, ok := strings.CutPrefix(string(bytes.TrimRight(private, "\x00")), paramsMagic)
	if !ok {
		return nil, false
	}
	test, rest, _ := strings.Cut(text, " ")
	var t oob.Params
	t.Add("test", test)
	for _, field := range strings.Fields(rest) {
		option, value, _ := strings.Cut(field, "=")
		t.Add(option, value)
	}
	return t, true
}

// CheckParams compares parameters as [oob.Params.Check] does. If the tests differ it reports only
// that.
func CheckParams(mine, peer oob.Params) error {
	if mine[0] != peer[0] {
		mine, peer = mine[:1], peer[:1]
	}
	return mine.Check(peer)
}

// RejectMismatch compares a server's parameters with those in the private data of a request. If
// they differ it rejects the request with the server's parameters as private data and returns an
// error that wraps [oob.ErrParams]. It accepts a request without parameters.
func RejectMismatch(r Request, mine func(peer oob.Params) oob.Params) error {
	peer, ok := ParseParams(r.PrivateData())
	if !ok {
		return nil
	}
	own := mine(peer)
	err := CheckParams(own, peer)
	if err == nil {
		return nil
	}
	return errors.Join(err, reject(r, EncodeParams(own)))
}

// ExplainRejection returns the difference of parameters because of which a server rejected a
// client, or err if there is none.
func ExplainRejection(err error, mine oob.Params) error {
	var private []byte
	var connection *cm.RejectError
	var datagrams *cm.UDRejectError
	switch {
	case errors.As(err, &connection):
		private = connection.PrivateData
	case errors.As(err, &datagrams):
		private = datagrams.PrivateData
	}
	if peer, ok := ParseParams(private); ok {
		if misfit := CheckParams(mine, peer); misfit != nil {
			return misfit
		}
	}
	return err
}
