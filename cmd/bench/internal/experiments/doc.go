// Package experiments has the experiments, one file for each family. Importing the package
// registers all of them:
//
//	import _ "github.com/softrnic/softrnic/cmd/bench/internal/experiments"
//
// See package bench for the parts of an experiment.
package experiments
