package proc

import (
	"encoding/json"
	"fmt"
	"time"
)

// message is one JSON line on the control channel, in either direction.
type message struct {
	Kind kind            `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

type kind string

const (
	kindHello    kind = "hello"    // parent to worker, first: hello
	kindCall     kind = "call"     // parent to worker: the request of a Call
	kindReply    kind = "reply"    // worker to parent: its answer
	kindExchange kind = "exchange" // worker to parent: a value; back: all values in rank order
	kindError    kind = "error"    // worker to parent, last: what went wrong
)

// hello tells a worker who it is.
type hello struct {
	Rank    int             `json:"rank"`
	Size    int             `json:"size"`
	Args    json.RawMessage `json:"args,omitempty"`
	Timeout time.Duration   `json:"timeout"`
	CPU     *int            `json:"cpu,omitempty"` // to stay on
}

func encodeMessage(k kind, v any) (message, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return message{}, fmt.Errorf("proc: cannot send %T as JSON: %w", v, err)
	}
	return message{Kind: k, Data: b}, nil
}

func decodeData[T any](b json.RawMessage) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("proc: cannot read %T from %.80q: %w", v, b, err)
	}
	return v, nil
}
