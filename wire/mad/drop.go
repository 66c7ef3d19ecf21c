package mad

import "strconv"

// A Drop is the reason why Parse rejects a datagram.
type Drop uint8

// Reasons.
const (
	DropNone            Drop = iota // the datagram is a message of the communication manager
	DropBadSize                     // not 256 bytes
	DropBadVersion                  // unsupported base version
	DropOtherClass                  // another management class
	DropBadClassVersion             // unsupported class version
	DropBadMethod                   // the method is not Send
	DropUnknownAttr                 // unknown attribute
	NumDrops                        // number of reasons, DropNone included
)

var dropNames = [NumDrops]string{
	"none", "bad_size", "bad_version", "other_class", "bad_class_version", "bad_method", "unknown_attribute",
}

// String returns the name of the reason in snake case, as in counters.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "drop_" + strconv.Itoa(int(d))
}
