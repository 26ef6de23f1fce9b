package flaky

import "testing"

func check(t *testing.T, program func() error) {
	t.Helper()
	if err := program(); err != nil {
		t.Error(err)
	}
}

func TestLostUpdate(t *testing.T) { check(t, lostUpdate) }
func TestLostAtomic(t *testing.T) { check(t, lostAtomic) }
func TestCloseRace(t *testing.T)  { check(t, closeRace) }
func TestLateCancel(t *testing.T) { check(t, lateCancel) }
func TestLateSend(t *testing.T)   { check(t, lateSend) }
func TestStartOrder(t *testing.T) { check(t, startOrder) }
func TestSameMoment(t *testing.T) { check(t, sameMoment) }
func TestLockOrder(t *testing.T)  { check(t, lockOrder) }
func TestUnlocked(t *testing.T)   { check(t, unlocked) }
