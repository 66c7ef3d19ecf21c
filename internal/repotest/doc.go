// Package repotest holds no code. Its tests keep the direction of imports, by
// which each floor of the module knows the floors below it and nothing else, and
// hold the documents to what is there: links lead somewhere, files, tests and Go
// names exist, and examples do what they show.
//
//	go test ./internal/repotest -run DocsScenarios -update   # writes what examples print anew
package repotest
