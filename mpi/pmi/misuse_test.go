package pmi_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// TestMisuse calls every exported function and method with arguments out of range.
func TestMisuse(t *testing.T) {
	s := &misuse.Surface{
		Dir:    ".",
		Funcs:  map[string]any{"RunLocal": pmi.RunLocal, "Open": pmi.Open},
		Except: map[string]string{"NewLocal": "panics for less than one rank, as its comment says"},
	}
	s.Check(t)
}
