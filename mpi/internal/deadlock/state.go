package deadlock

import "encoding/json"

// Any is any rank, or any tag.
const Any = -1

// A State is the report of a rank about itself. Ranks are those of the job.
type State struct {
	Rank int
	Host string
	PID  int

	Calls []Call // waiting calls; none if the rank computes
	Last  string // last operation
	Quiet int64  // time in ms since the last call

	Collectives []Collective // last one started on each communicator

	Receives []Message // posted receives
	Messages []Message // unexpected messages
	Sends    []Message // sends that are unmatched or queued
	Left     Left      // numbers of omitted entries of these lists
	More     int       // omitted entries of unknown kind

	MoreCalls int // waiting calls that are not in Calls

	Lost []string // failed ranks, with the cause
}

// Left counts the entries omitted from the lists of a State. A count of MaxLeft means
// at least as many.
type Left struct{ Receives, Messages, Sends int }

// MaxLeft is the maximum count of Left. Counting stops there, because the rank makes no
// progress meanwhile.
const MaxLeft = 1 << 16

// A Call is a waiting MPI call, or several calls that poll.
type Call struct {
	What   string // "Recv(source 1, tag 5)"
	Comm   string // name of the communicator
	At     string // source position, "ring/main.go:23", or ""
	Millis int64  // time in ms that it has waited

	For   []int // ranks that it waits for
	Any   bool  // it waits for any one of them
	Why   string
	Unmet bool // the message or the receive is missing
	Aside bool // it runs in the background without a waiter
	Polls bool // the program polls instead of waiting
	Busy  bool // and does other work most of the time

	Collective *Collective `json:",omitempty"`
}

// A Collective is a collective call.
type Collective struct {
	Comm  uint32 // ID of the communicator
	Ranks uint64 // hash of its ranks: IDs of communicators are not unique
	Name  string // of the communicator
	Seq   uint32 // sequence number of the call
	What  string // "allreduce"
	With  string // "of 8 float64 with sum"
	Begun bool   // it was started; With is unknown
}

// A Message is a message, a receive or a send, or several equal ones.
type Message struct {
	Comm     string
	Call     uint32 // sequence number of the collective call, or 0
	From, To int    // Any if unknown
	Tag      int
	Bytes    int64 // of the first
	Count    int
	Held     bool // of a message: only the RTS arrived; of a send: it is queued
}

// MaxListed is the maximum length of each list of messages of a State.
const MaxListed = 16

// AddMessage adds a message to a list, or counts it in an equal entry. It reports
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

// AppendJSON appends the encoding of a state to b.
func (s *State) AppendJSON(b []byte) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // no field can fail to encode
	}
	return append(b, text...)
}

// DecodeState decodes the encoding of AppendJSON. The caller bounds the length of b.
func DecodeState(b []byte) (*State, error) {
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	return s, nil
}
