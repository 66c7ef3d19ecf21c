// Package environment lists the environment variables of this project and warns of unknown
// ones, which are usually typing errors.
//
//	environment.WarnUnknown(func(text string) { log.Print(text) })
package environment

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Prefix begins the names of all variables of this project.
const Prefix = "SOFTRNIC_"

// Known lists the variables that programs of this project read, sorted. Variables of its tests
// contain the word TEST, LAB or LAUNCH.
var Known = []string{
	"SOFTRNIC_ACP_NET", "SOFTRNIC_ADDR", "SOFTRNIC_DEBUG", "SOFTRNIC_IMPAIR", "SOFTRNIC_LINK", "SOFTRNIC_LOG",
	"SOFTRNIC_MPI_CHECK", "SOFTRNIC_MPI_COLL", "SOFTRNIC_MPI_CONNECT", "SOFTRNIC_MPI_EAGER", "SOFTRNIC_MPI_FAST",
	"SOFTRNIC_MPI_GIVE_UP", "SOFTRNIC_MPI_NET", "SOFTRNIC_MPI_ONESIDED", "SOFTRNIC_MPI_RAILS", "SOFTRNIC_MPI_RC_LIMIT",
	"SOFTRNIC_MPI_RENDEZVOUS", "SOFTRNIC_MPI_REPORT_SIGNAL", "SOFTRNIC_MPI_SHARED", "SOFTRNIC_MPI_WATCHDOG",
	"SOFTRNIC_NAS_ALL", "SOFTRNIC_PMI", "SOFTRNIC_PMI_SECRET", "SOFTRNIC_SEED", "SOFTRNIC_SEEDS",
}

// Unknown returns the names in environ ("NAME=value") that begin with Prefix and are not known,
// sorted and without duplicates.
func Unknown(environ []string) []string {
	var list []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, Prefix) && !slices.Contains(Known, name) && !isTestVariable(name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func isTestVariable(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "_"), func(word string) bool {
		return word == "TEST" || word == "LAB" || word == "LAUNCH"
	})
}

// Nearest returns the known name with the smallest edit distance to name.
func Nearest(name string) string {
	return slices.MinFunc(Known, func(a, b string) int { return cmp.Compare(editDistance(name, a), editDistance(name, b)) })
}

// editDistance returns the Levenshtein distance of a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

var warned sync.Once

// WarnUnknown calls warn with a sentence for each unknown variable of the process. Only the
// first call in a process has an effect.
func WarnUnknown(warn func(text string)) {
	warned.Do(func() {
		for _, name := range Unknown(os.Environ()) {
			warn(fmt.Sprintf("environment variable %s is unknown and has no effect; the nearest known one is %s", name, Nearest(name)))
		}
	})
}
