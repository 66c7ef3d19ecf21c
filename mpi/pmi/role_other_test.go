//go:build !unix

package pmi

// playRole has nothing to do: no test starts ranks here.
func playRole(string) int { return 3 }
