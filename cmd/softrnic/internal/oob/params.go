package oob

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// ParamsLen is the length of encoded [Params] in bytes.
const ParamsLen = 256

// ErrParams reports that the two ends were started with different parameters. The error that wraps
// it lists the differences.
var ErrParams = errors.New("test parameters of the two ends differ")

// Params are the parameters of a test that must be equal at both ends, in the order in which
// differences are reported. Ends of this project exchange them before the first message of the
// test; the original programs do not.
type Params []Param

// A Param is one parameter: the option that sets it, such as "-s", and its value as text. Neither
// contains a line feed or a NUL.
type Param struct{ Option, Value string }

// Add appends a parameter.
func (p *Params) Add(option, value string) { *p = append(*p, Param{option, value}) }

// paramsMagic begins encoded parameters. Its last digit is the version of the format.
const paramsMagic = "softrnic terms 1\n"

// Encode returns p as ParamsLen bytes: paramsMagic, a line "option=value" for each parameter, and
// NULs. It panics if they do not fit.
func (p Params) Encode() []byte {
	b := []byte(paramsMagic)
	for _, term := range p {
		b = fmt.Appendf(b, "%s=%s\n", term.Option, term.Value)
	}
	if len(b) > ParamsLen {
		panic(fmt.Sprintf("oob: parameters: %d bytes, limit %d", len(b), ParamsLen))
	}
	return append(b, make([]byte, ParamsLen-len(b))...)
}

// errParamsSyntax reports bytes that are no encoded Params.
var errParamsSyntax = errors.New("parameters: want " + strings.TrimSpace(paramsMagic) + " and lines option=value")

// ParseParams decodes the result of Encode.
func ParseParams(b []byte) (Params, error) {
	text, magic := bytes.CutPrefix(b, []byte(paramsMagic))
	text, padding, _ := bytes.Cut(text, []byte{0})
	if len(b) != ParamsLen || !magic || len(bytes.Trim(padding, "\x00")) > 0 {
		return nil, errParamsSyntax
	}
	var t Params
	for line := range strings.Lines(string(text)) {
		option, value, ok := strings.Cut(line, "=")
		if !ok || option == "" || !strings.HasSuffix(value, "\n") {
			return nil, errParamsSyntax
		}
		t = append(t, Param{option, strings.TrimSuffix(value, "\n")})
	}
	return t, nil
}

// Check compares the parameters of this end with the peer's and returns an error that wraps
// ErrParams and lists every difference. A parameter that only one end has is a difference, because
// it depends on the others.
func (p Params) Check(peer Params) error {
	theirs := make(map[string]string, len(peer))
	for _, term := range peer {
		theirs[term.Option] = term.Value
	}
	var list []string
	for _, mine := range p {
		value, ok := theirs[mine.Option]
		if !ok {
			value = "not set"
		}
		if delete(theirs, mine.Option); !ok || value != mine.Value {
			list = append(list, fmt.Sprintf("%s is %s here and %s at the peer", mine.Option, mine.Value, value))
		}
	}
	for _, term := range peer {
		if value, left := theirs[term.Option]; left {
			list = append(list, fmt.Sprintf("%s is not set here and %s at the peer", term.Option, value))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrParams, strings.Join(list, ", "))
}
