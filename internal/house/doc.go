// Package house holds no code. Its test keeps the direction of imports: each
// floor of the module knows the floors below it and nothing else.
package house
