// Tests of features that a client expects and Bolide does not have. They run nevertheless.

package bolide.support;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/** A test that must fail, for that reason: passing fails the run, so that the annotation is removed with its cause. */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(ExpectedFailure.Inverted.class)
public @interface ExpectedFailure {
    String value();

    final class Inverted implements InvocationInterceptor {
        @Override
        public void interceptTestMethod(Invocation<Void> test, ReflectiveInvocationContext<Method> method,
            ExtensionContext context) {
            String reason = method.getExecutable().getAnnotation(ExpectedFailure.class).value();
            try {
                test.proceed();
            } catch (Throwable expected) {
                System.out.println(context.getDisplayName() + " fails as expected: " + reason);
                return;
            }
            throw new AssertionError("passes, though it is expected to fail: " + reason);
        }

        @Override
        public void interceptTestTemplateMethod(Invocation<Void> test, ReflectiveInvocationContext<Method> method,
            ExtensionContext context) {
            interceptTestMethod(test, method, context);
        }
    }
}
