package rnicdebug

import (
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

// EnvVar names the environment variable that FromEnvironment reads.
const EnvVar = "SOFTRNIC_DEBUG"

// Auto as an address is a Unix socket in the user's runtime directory, named
// after the process. `softrnic stat` looks there.
const Auto = debug.Auto

// Off as the value of EnvVar is no endpoint.
const Off = "off"

// Server is the endpoint of a device. A nil Server is none: it can be closed
// like any other.
type Server struct{ s *debug.Server }

// Serve opens an endpoint for dev at addr: Auto, "unix:/path", or a loopback
// address with a port, of which 0 is any free one. Every other address is
// refused. Close the server before the device.
func Serve(dev *rnic.Device, addr string) (*Server, error) {
	s, err := debug.Serve(dev, addr)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// FromEnvironment is Serve at the address that SOFTRNIC_DEBUG names. Without
// it, or if it says "off", the Server is nil.
func FromEnvironment(dev *rnic.Device) (*Server, error) {
	addr := os.Getenv(EnvVar)
	if addr == "" || addr == Off {
		return nil, nil
	}
	s, err := Serve(dev, addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvVar, err)
	}
	return s, nil
}

// Addr is where the endpoint is, in the form that Serve takes; "" for a nil
// Server.
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	return s.s.Addr()
}

// Close ends requests under way, a capture too, and removes the endpoint. It
// does not close the device. Closing twice is safe.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	return s.s.Close()
}

// NewCollector collects dev's counters for a program that has a registry of
// its own. The metrics are those of the endpoint's /metrics.
func NewCollector(dev *rnic.Device) prometheus.Collector {
	return debug.NewCollector(dev.Inspect, debug.CollectorOptions{})
}
