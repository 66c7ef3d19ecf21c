package debug

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/debug/endpoint"
	"github.com/softrnic/softrnic/rnic"
)

// Report is what /stat answers: the device, and whose it is.
type Report struct {
	endpoint.About
	rnic.Snapshot
}

// FormatQPN writes a queue pair number as messages do: "0x11".
func FormatQPN(n uint32) string { return fmt.Sprintf("0x%x", n) }

// ParseQPN reads a queue pair number, decimal or hexadecimal after 0x.
func ParseQPN(s string) (uint32, error) { return endpoint.ParseQPN(s) }
