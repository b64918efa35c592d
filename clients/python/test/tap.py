"""python3 -m test.tap MODULE...: runs tests and prints TAP."""

import logging
import sys
import unittest
import warnings


class Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.bad = 0

    def report(self, test, error=None):
        name = (getattr(test, "_testMethodName", "") or str(test)).removeprefix("test_").replace("_", " ")
        self.bad += error is not None
        print(f"{'ok' if error is None else 'not ok'} {self.testsRun or 1} - {name}")
        if error is not None:
            print("# " + self._exc_info_to_string(error, test).rstrip().replace("\n", "\n# "))
        sys.stdout.flush()

    def addSuccess(self, test):
        self.report(test)

    def addFailure(self, test, error):
        self.report(test, error)

    addError = addFailure

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.report(subtest, error)


if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("error", ResourceWarning)
    result = Tap()
    unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]).run(result)
    print(f"1..{result.testsRun}")
    sys.exit(result.bad > 0)
