package deadlock

import "encoding/json"

// Any is any rank, or any tag.
const Any = -1

// State is what a rank says of itself. Ranks are those of the job.
type State struct {
	Rank int
	Host string
	PID  int

	Calls []Call // that wait; none if the rank computes
	Last  string // what it did last
	Quiet int64  // since when it has made no call, in ms

	Collectives []Collective // the last one of each communicator, begun

	Receives []Message // that wait for a message
	Messages []Message // that wait for a receive
	Sends    []Message // that wait for their receive, or for room
	Left     Left      // of these, that are not listed
	More     int       // the same, of no list in particular

	MoreCalls int // that wait and are not in Calls: nothing is known of them

	Lost []string // ranks that it has lost, and why
}

// Left counts what is not listed for want of room. A count of MaxLeft means as many or
// more.
type Left struct{ Receives, Messages, Sends int }

// MaxLeft is the maximum of a count of Left: beyond it nothing is counted, since the
// rank stands still meanwhile.
const MaxLeft = 1 << 16

// Call is a call of MPI that waits, or several that are asked for again and again.
type Call struct {
	What   string // "Recv(source 1, tag 5)"
	Comm   string // name of the communicator
	At     string // where in the program, "ring/main.go:23", or ""
	Millis int64  // so long

	For   []int // ranks that it waits for
	Any   bool  // one of them is enough
	Why   string
	Unmet bool // the message, or the receive, is not there
	Aside bool // it goes on in the background, and nobody waits for it
	Polls bool // it does not wait: the program asks for it again and again
	Busy  bool // and does something else for most of the time

	Collective *Collective `json:",omitempty"`
}

// Collective is a collective call.
type Collective struct {
	Comm  uint32 // number of the communicator
	Ranks uint64 // hash of its ranks: two communicators may have one number
	Name  string // its name
	Seq   uint32 // number of the call
	What  string // "allreduce"
	With  string // "of 8 float64 with sum"
	Begun bool   // it was begun; With is not known
}

// Message is a message, a receive or a send, or several that are alike.
type Message struct {
	Comm     string
	Call     uint32 // of which collective call, or 0
	From, To int    // Any if that is not known
	Tag      int
	Bytes    int64 // of the first
	Count    int
	Held     bool // of a message: it is only announced; of a send: there is no room for it
}

// MaxListed is how many messages of a kind a State has.
const MaxListed = 16

// AddMessage adds a message to a list, to one that is alike if there is one. It reports
// whether there was room.
func AddMessage(list *[]Message, m Message) bool {
	m.Count = 1
	for i := range *list {
		o := &(*list)[i]
		if o.Comm == m.Comm && o.Call == m.Call && o.From == m.From && o.To == m.To && o.Tag == m.Tag && o.Held == m.Held {
			o.Count++
			return true
		}
	}
	if len(*list) == MaxListed {
		return false
	}
	*list = append(*list, m)
	return true
}

// AppendJSON writes a state for another rank.
func (s *State) AppendJSON(b []byte) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it has no fields that could
	}
	return append(b, text...)
}

// DecodeState reads what Append has written. It bounds nothing: the caller has bounded the
// bytes.
func DecodeState(b []byte) (*State, error) {
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	return s, nil
}
