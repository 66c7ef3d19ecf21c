package collective

// The sequence number of a call is the tag of its messages. persistentTag is set in the messages
// of persistent calls, which may last longer than maxSeq other calls; checkTag is set in messages
// that compare calls before they execute. groupTag marks the calls of a group, which has no
// context of its own yet: the calls of the communicator set persistentTag or checkTag but never
// both.
const (
	maxSeq        = 1<<29 - 1
	persistentTag = 1 << 29
	checkTag      = 1 << 30
	groupTag      = persistentTag | checkTag
	MaxGroupTag   = maxSeq >> 1
)

// wakeTag is the tag of wake-up messages. No call uses it, nor does CreateGroup, whose tags are
// lower.
const wakeTag = groupTag | 1<<28
