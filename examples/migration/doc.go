// Package migration has programs before and after a change to Braid: a condition variable, a semaphore, a group with a limit, a
// dataloader and a gnet server. Both sides of each pair pass the same test. docs/migration.md shows them.
//
//	cd examples/migration && go test .
package migration
