package datatype

// Code returns the wire code of a predefined operation. User-defined operations have
// none.
func (o Op) Code() (code uint8, ok bool) { return uint8(o.code), o.code != opNone && o.code != opUser }

// OpOf returns the predefined operation of a wire code.
func OpOf(code uint8) (o Op, ok bool) {
	for _, o := range Ops() {
		if uint8(o.code) == code {
			return o, true
		}
	}
	return Op{}, false
}
