package datatype

// Code is the number of a predefined operation, by which another process knows
// it too. The program's own operations have none.
func (o Op) Code() (code uint8, ok bool) { return uint8(o.code), o.code != opNone && o.code != opUser }

// OpOf is the predefined operation with a number.
func OpOf(code uint8) (o Op, ok bool) {
	for _, o := range Ops() {
		if uint8(o.code) == code {
			return o, true
		}
	}
	return Op{}, false
}
