//go:build !linux && !darwin

package env

import "os"

func kernel() string { return "" }

// cpu is told by Windows in the environment.
func cpu() string { return os.Getenv("PROCESSOR_IDENTIFIER") }

func rmem(string) string { return "" }

func load() string { return "" }
