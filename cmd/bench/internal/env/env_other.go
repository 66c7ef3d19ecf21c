//go:build !linux && !darwin

package env

import "os"

func kernelVersion() string { return "" }

// cpuModel is told by Windows in the environment.
func cpuModel() string { return os.Getenv("PROCESSOR_IDENTIFIER") }

func netCoreSysctl(string) string { return "" }

func loadAverage() string { return "" }
