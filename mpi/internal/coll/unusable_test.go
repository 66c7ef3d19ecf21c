package coll_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// TestUnusable calls every exported function and method with nil and zero values and with
// arguments out of range: each returns, and with an error where it has one. A Call on a Net
// is called with bad arguments by TestArguments.
func TestUnusable(t *testing.T) {
	s := &misuse.Surface{
		Dir:   ".",
		Funcs: map[string]any{"Algorithms": coll.Algorithms, "Collectives": coll.Collectives, "NewChoices": coll.NewChoices, "ParseChoices": coll.ParseChoices, "ParseCollective": coll.ParseCollective},
		Types: map[string][]misuse.Receiver{
			"Algorithm":  {{Name: "zero", Usable: true, Make: func() any { return &coll.Algorithm{} }}},
			"Call":       {{Name: "without a net", Make: func() any { return &coll.Call{} }}},
			"Choices":    {{Name: "nil", Usable: true, Make: func() any { return coll.Choices(nil) }}},
			"Collective": {{Name: "unknown", Usable: true, Make: func() any { return coll.Collective(200) }}},
		},
		Values: []any{coll.Collective(200), coll.Case{Ranks: -1}, coll.Case{}, "nonsense", "allreduce=nonsense", "nonsense=ring"},
		Quiet:  map[string]string{"Algorithm.Validate on zero": "an algorithm that needs nothing"},
		Errors: []error{coll.ErrArgument, coll.ErrAlgorithm},
	}
	s.Check(t)
}
