package rdmacm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/wire/mad"
)

// ParamsLen is the most bytes that encoded terms may have: the private data of a REQ behind
// RDMA-CM's header, which is the shortest of the messages that carry them.
const ParamsLen = 56

// paramsMagic begins encoded terms. Its digit is the version of the format.
const paramsMagic = "softrnic 1 "

// EncodeParams returns terms as private data: termsMagic, the value of the first term, which
// is the test, and " option=value" for each of the others. The original programs send no
// private data, and ignore what a peer sends (rdma-core, librdmacm/examples).
func EncodeParams(t oob.Params) []byte {
	text := paramsMagic + t[0].Value
	for _, term := range t[1:] {
		text += " " + term.Option + "=" + term.Value
	}
	return []byte(text)
}

// ParseParams decodes terms that EncodeTerms has written. It reports false for other
// private data, which is that of a program that sends no terms.
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

// CheckParams compares the terms of this end with the peer's, as [oob.Params.Check] does.
// Those of another test are not compared one by one.
func CheckParams(mine, peer oob.Params) error {
	if mine[0] != peer[0] {
		mine, peer = mine[:1], peer[:1]
	}
	return mine.Check(peer)
}

// ParamsRequest is a request that may carry terms: *cm.Request or *cm.UDRequest.
type ParamsRequest interface {
	PrivateData() []byte
	Reject(private []byte) error
}

// RejectMismatch compares the terms of a server with those in the private data of a request.
// Where they do not fit it rejects the request with the server's terms as private data, and
// returns an error that wraps [oob.ErrParams]. A request without terms fits.
func RejectMismatch(r ParamsRequest, mine func(peer oob.Params) oob.Params) error {
	peer, ok := ParseParams(r.PrivateData())
	if !ok {
		return nil
	}
	own := mine(peer)
	err := CheckParams(own, peer)
	if err == nil {
		return nil
	}
	return errors.Join(err, r.Reject(EncodeParams(own)))
}

// ExplainRejection returns the difference of terms that made a server reject a client with
// the terms mine, or err if that is something else. Where the peer's adapter has no listener on the port
// it says so.
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
	if connection != nil && connection.Reason == cm.InvalidServiceID || datagrams != nil && datagrams.Status == mad.SIDRUnsupported {
		return fmt.Errorf("%w; the adapter there is that of a program that serves other ports or none", err)
	}
	if peer, ok := ParseParams(private); ok {
		if misfit := CheckParams(mine, peer); misfit != nil {
			return misfit
		}
	}
	return err
}
