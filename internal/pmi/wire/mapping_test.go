package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

func TestMapping(t *testing.T) {
	for text, want := range map[string][]int{
		"(vector,(0,1,1))":                {0, 0, 0, 0}, // of hydra on one host
		"(vector,(0,2,2))":                {0, 0, 1, 1, 0, 0},
		"(vector,(0,1,3),(1,1,2))":        {0, 0, 0, 1, 1},
		"( vector , ( 0 , 2 , 1 ) )":      {0, 1},
		"(vector,(0,2,1),(0,2,1)":         {0, 1, 0, 1}, // of Slurm, without the last parenthesis
		"(vector,(0,1000000000,0),1)":     {1},
		"(vector,(0,1000000000,1))":       {0, 1, 2},
		"(vector,(0,1,1000000000),(7))":   nil,
		"(vector,(0,1,1000000000),7)":     {0, 0},
		"(vector,[[0]x2,1]x1000000000)":   {0, 0, 1, 0, 0, 1, 0},
		"(vector,[(0,1,0)]x1000000000,1)": {1},

		// These are the cases of MPICH (test/units/mpl_rankmap_str_to_array.unit).
		"(vector,1,2,3,0)":               {1, 2, 3, 0},
		"(vector,(0,3,4))":               {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2},
		"(vector,[(0,3,1)]x4)":           {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2},
		"(vector,[(0,3,1)]x3,(0,3,1))":   {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2},
		"(vector,[(0,2,1),2]x3,(0,3,1))": {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2},
		"(vector,(1,3,1),(0,4,1))":       {1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0},
	} {
		if want == nil {
			_, err := wire.ParseMapping(text, 2)
			require.Error(t, err, text)
			continue
		}
		got, err := wire.ParseMapping(text, len(want))
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}

func TestNoMapping(t *testing.T) {
	for _, text := range []string{
		"", "(", "(vector", "(scalar,(0,1,1))", "(vector,(0,1))", "(vector,(0,1,1)))", "(vector,(-1,1,1))", "(vector,[0)", "(vector,[0]x0)", "(vector,0]x2",
		"(vector,(1,1,1))", "(vector,99999999999999)", "(vector,0,)", "(vector,[[[[[[[[[[0]x1]x1]x1]x1]x1]x1]x1]x1]x1]x1)", "(vector,(0,1,0))",
	} {
		_, err := wire.ParseMapping(text, 3)
		require.ErrorContains(t, err, wire.MappingKey, text)
	}
}

func TestFormatMapping(t *testing.T) {
	require.Equal(t, "(vector,(0,1,1))", wire.FormatMapping([]int{0, 0, 0, 0}))
	require.Equal(t, "(vector,(0,2,2))", wire.FormatMapping([]int{0, 0, 1, 1}))
	require.Equal(t, "(vector,(0,2,1))", wire.FormatMapping([]int{0, 1, 0, 1, 0}))
	require.Equal(t, "(vector,(0,1,3),(1,1,1))", wire.FormatMapping([]int{0, 0, 0, 1}))
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 40).Draw(t, "nodes")
		got, err := wire.ParseMapping(wire.FormatMapping(nodes), len(nodes))
		require.NoError(t, err)
		require.Equal(t, nodes, got)
	})
}

func FuzzParseMapping(f *testing.F) {
	f.Add("(vector,[(0,2,1),2]x3,(0,3,1))", 12)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = min(max(size, 0), 1000)
		nodes, err := wire.ParseMapping(text, size)
		if err == nil && len(nodes) != size {
			t.Fatal(len(nodes), size)
		}
	})
}
