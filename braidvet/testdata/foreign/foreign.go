package foreign

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"

	"github.com/braidgo/braid/mutex"
)

var mu mutex.Mutex

func wrong(c *gin.Context, f *fiber.Ctx) error {
	if err := mu.LockContext(c); err != nil { // want `a gin.Context does not end when the client leaves: c.Request.Context\(\) does`
		return err
	}
	return mu.LockContext(f.UserContext()) // want `a context of fiber does not end when the client leaves: give the wait a timeout`
}

func right(ctx context.Context, c *gin.Context) error {
	work(c)
	if err := mu.LockContext(c.Request.Context()); err != nil {
		return err
	}
	return mu.LockContext(ctx)
}

func work(ctx context.Context) {}
