package proc

import (
	"encoding/json"
	"fmt"
	"time"
)

// A message is one JSON line on the control channel, in either direction.
type message struct {
	Kind kind            `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

type kind string

const (
	kindHello    kind = "hello"    // parent to worker, first message: hello
	kindCall     kind = "call"     // parent to worker: the request of a Call
	kindReply    kind = "reply"    // worker to parent: the reply to a call
	kindExchange kind = "exchange" // worker to parent: a value; parent to worker: all values in rank order
	kindError    kind = "error"    // worker to parent, last message: the error text
)

// A hello is the first message to a worker.
type hello struct {
	Rank    int             `json:"rank"`
	Size    int             `json:"size"`
	Args    json.RawMessage `json:"args,omitempty"`
	Timeout time.Duration   `json:"timeout"`
	CPU     *int            `json:"cpu,omitempty"` // CPU to pin to
}

func encodeMessage(k kind, v any) (message, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return message{}, fmt.Errorf("proc: encode %T: %w", v, err)
	}
	return message{Kind: k, Data: b}, nil
}

func decodeData[T any](b json.RawMessage) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("proc: decode %T from %.80q: %w", v, b, err)
	}
	return v, nil
}
