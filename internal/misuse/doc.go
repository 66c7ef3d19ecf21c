// Package misuse calls the exported functions and methods of a package with
// arguments outside of their contract: nil and zero receivers, handles that were
// freed, nil pointers, interfaces and slices, numbers out of range. None may panic or
// hang. The surface is read from the package's source, so that a function or type
// that is added without an entry in the test fails it.
package misuse
