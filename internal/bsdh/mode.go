package bsdh

import "strconv"

// A Mode is the transfer mode of one direction.
type Mode uint8

// Transfer modes. A connection starts with Combined in both directions.
const (
	Buffered  Mode = iota // as Data only
	Combined              // as Data, or one SrcAvail at a time, with payload
	Pipelined             // as Data, or several SrcAvail or SinkAvail at a time
)

// String returns the name of the mode, for example "pipelined".
func (m Mode) String() string {
	switch m {
	case Buffered:
		return "buffered"
	case Combined:
		return "combined"
	case Pipelined:
		return "pipelined"
	}
	return "mode " + strconv.Itoa(int(m))
}

// ModeChange is the extended header of MIDModeChange, which changes the mode of one
// direction immediately.
//
//	0  send half 1, mode 3, reserved 4     1  reserved
type ModeChange struct {
	Mode Mode // 3 bits

	// SendHalf selects the direction from the receiver of the message to its
	// sender. Otherwise the opposite direction changes.
	SendHalf bool
}

// String returns mode and direction, for example "pipelined, receive half".
func (c ModeChange) String() string {
	if c.SendHalf {
		return c.Mode.String() + ", send half"
	}
	return c.Mode.String() + ", receive half"
}

// Append appends the extended header to b.
func (c ModeChange) Append(b []byte) []byte {
	v := byte(c.Mode&7) << 4
	if c.SendHalf {
		v |= 0x80
	}
	return append(b, v, 0, 0, 0)
}

// parseModeChange returns an error for a mode that does not exist.
func parseModeChange(b []byte) (c ModeChange, err error) {
	if err := checkLength(b, "ModeChange", modeBytes); err != nil {
		return c, err
	}
	if mode := Mode(b[0] >> 4 & 7); mode > Pipelined {
		return c, malformedError("ModeChange to %v, the last is %d", mode, Pipelined)
	}
	return ModeChange{Mode: Mode(b[0] >> 4 & 7), SendHalf: b[0]&0x80 != 0}, nil
}
