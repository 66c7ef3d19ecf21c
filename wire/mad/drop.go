package mad

import "strconv"

// Drop is the reason why Parse does not take a datagram.
type Drop uint8

// Reasons.
const (
	DropNone            Drop = iota // it is a message of the communication manager
	DropBadSize                     // it has not 256 bytes
	DropBadVersion                  // of another base version
	DropOtherClass                  // of another management class
	DropBadClassVersion             // of another class version
	DropBadMethod                   // its method is not Send
	DropUnknownAttr                 // no such message
	NumDrops                        // number of reasons, DropNone included
)

var dropNames = [NumDrops]string{
	"none", "bad_size", "bad_version", "other_class", "bad_class_version", "bad_method", "unknown_attribute",
}

// String is the name of the reason in snake case, as counters carry it.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "drop_" + strconv.Itoa(int(d))
}
