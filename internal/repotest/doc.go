// Package repotest tests the repository as a whole. It has no code of its own.
//
// Its tests check that imports follow the layers of the module and that cores
// are free of I/O, that documents agree with the code (links, file names, Go
// names, examples, promised times, reported values, counters), and that the
// measures of language and API surface stay within their limits.
//
// To update the output of the scenarios in the documents:
//
//	go test ./internal/repotest -run DocsScenarios -update
package repotest
