package sdp

import (
	"fmt"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// A FlowControl is a flow control mode. The zero value is the default, NIC.
type FlowControl uint8

// Flow control modes.
const (
	NIC    FlowControl = iota // by the adapters; the default
	RDMA                      // by the sender; progress in calls only
	Credit                    // by credits, as in the standard; every peer supports it
)

// The modes have the same numbers in package flow, so that a conversion suffices.
var _ = [1]struct{}{}[NIC-FlowControl(flow.NIC)|RDMA-FlowControl(flow.RDMA)|Credit-FlowControl(flow.Credit)]

// String returns the name used in command lines: "nic", "rdma" or "credit".
func (f FlowControl) String() string { return flow.Control(f).String() }

// MarshalText implements encoding.TextMarshaler with the name of the mode.
func (f FlowControl) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, the inverse of MarshalText.
func (f *FlowControl) UnmarshalText(text []byte) error {
	mode, err := flow.ParseControl(string(text))
	if err != nil {
		return fmt.Errorf("sdp: %w: %w", verbs.ErrInvalid, err)
	}
	*f = FlowControl(mode)
	return nil
}
