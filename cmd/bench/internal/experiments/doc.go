// Package experiments holds the experiments, a file each. Importing it
// registers them all:
//
//	import _ "github.com/softrnic/softrnic/cmd/bench/internal/experiments"
//
// Package bench says what an experiment consists of.
package experiments
