/// Days as the Gregorian calendar has them.
public enum CivilDate {
    /// - Parameter year: from 1.
    public static func isValid(year: Int, month: Int, day: Int) -> Bool {
        year >= 1 && (1...12).contains(month) && day >= 1 && day <= dayCount(year, month)
    }

    private static func dayCount(_ year: Int, _ month: Int) -> Int {
        guard month == 2 else { return [4, 6, 9, 11].contains(month) ? 30 : 31 }
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    }
}
