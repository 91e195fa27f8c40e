// Waits for other threads and processes by polling; never for time to pass.

package bolide.support;

import java.time.Duration;
import java.util.function.BooleanSupplier;

public final class Waiting {
    private static final long POLL_MS = 5;

    private Waiting() {}

    /** Returns when {@code done} returns true; fails with {@code what} when the time is over. */
    public static void until(String what, Duration timeout, BooleanSupplier done) {
        if (!within(timeout, done)) {
            throw new AssertionError("not within " + timeout.toSeconds() + " s: " + what);
        }
    }

    /** Whether {@code done} returned true before the time was over; returns as soon as it does. */
    public static boolean within(Duration timeout, BooleanSupplier done) {
        long deadline = System.nanoTime() + timeout.toNanos();
        while (!done.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                return false;
            }
            try {
                Thread.sleep(POLL_MS);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
        return true;
    }
}
