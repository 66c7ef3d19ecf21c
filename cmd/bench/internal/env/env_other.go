//go:build !linux && !darwin

package env

import "os"

func kernelVersion() string { return "" }

// cpuModel returns the environment variable with the processor that Windows sets.
func cpuModel() string { return os.Getenv("PROCESSOR_IDENTIFIER") }

func netCoreSysctl(string) string { return "" }

func loadAverage() string { return "" }
